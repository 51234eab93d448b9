from mher_ros.experiments.experiment import EXPERIMENTS, find_experiment, narrow
from mher_ros.experiments.jobs import jobs_of
from mher_ros.experiments.metrics import METRICS
from mher_ros.experiments.plots import FIGURES
from mher_ros.experiments.recorders import RECORDERS
from mher_ros.options import OptionError
import pytest


@pytest.mark.parametrize('name', EXPERIMENTS)
def test_every_experiment_can_be_configured_measured_and_drawn(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.question.rstrip(')').split('(')[0].strip().endswith('?')
    assert set(experiment.metrics) <= set(METRICS)
    assert not experiment.plot or experiment.plot in FIGURES
    assert narrow(experiment).variants
    every = narrow(experiment, ('all',), ('all',))
    digests = [job.digest for job in jobs_of(every, (1,))]
    assert len(set(digests)) == len(every.variants) == len(experiment.variants)
    assert {variant.recorder for variant in every.variants} <= {'', *RECORDERS}


def test_an_unknown_experiment_is_refused():
    with pytest.raises(OptionError, match="'alchemy'.*ablation, additional, alpha"):
        find_experiment('alchemy')


def test_the_benchmark_is_the_papers_figure_2_on_the_authors_box():
    benchmark = narrow(find_experiment('benchmark'))
    assert benchmark.algorithms == ('mher', 'her', 'cher', 'mep', 'gcsl', 'ddpg')
    assert len(benchmark.tasks) == 5
    assert {variant.preset for variant in benchmark.variants} == {'paper'}
    (job, *_) = jobs_of(narrow(benchmark, ('point2d_large',)), (1,))
    assert job.config.task.box == 4.0


@pytest.mark.parametrize(
    ('name', 'section', 'option', 'values'),
    [
        ('alpha', 'agent', 'alpha', [0, 1, 3, 5, 7]),
        ('steps', 'relabel', 'steps', [0, 1, 3, 5, 7]),
        ('layers', 'model', 'hidden', [(256,) * layers for layers in range(1, 6)]),
    ],
)
def test_parameter_studies_vary_their_parameter(name, section, option, values):
    experiment = narrow(find_experiment(name), ('reacher',))
    jobs = jobs_of(experiment, (1,))
    assert [getattr(getattr(job.config, section), option) for job in jobs] == values
