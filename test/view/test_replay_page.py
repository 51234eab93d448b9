"""The page of a recorded run: what it draws and says, and what moves when people play it."""

import asyncio
import dataclasses

from mher_ros.robots.robot import load_robot
from mher_ros.view.replay_page import episode_drawings, episode_text, ReplayPage, workspace_drawing
from mher_ros.view.run_record import RunRecord
from mher_ros.view.server import PageServer
import numpy as np
import pytest
from recorded_runs import RecordedRun, STEPS

TASKS = ('point2d_large', 'reacher', 'fetch_reach')


@pytest.fixture(scope='module', params=TASKS)
def record(request, tmp_path_factory):
    """Return the record of a run with three episodes."""
    run = RecordedRun(tmp_path_factory.mktemp('recorded') / 'run', request.param)
    run.write_curve((40, 0.25, 0.5), (80, 0.5, 0.25))
    run.add_episodes(3)
    return RunRecord(run.folder)


class Shown:
    """A page, as a person has it in the browser."""

    def __init__(self, record):
        self._server = PageServer(port=0)
        self._gui = self._server.viser.gui
        self.page = ReplayPage(self._server.viser, record)
        self._now = 0.0
        self.wait(0.0)

    def wait(self, seconds):
        self._now += seconds
        self.page.tick(self._now)

    def press(self):
        (button,) = (handle for handle in self._handles() if _label(handle) in ('Play', 'Pause'))
        for callback in button._impl.update_cb:
            asyncio.run(callback(None))
        self.wait(0.0)
        return button.label

    def slider(self, name):
        (slider,) = (handle for handle in self._handles() if _label(handle) == name)
        return slider

    def texts(self):
        return '\n'.join(
            handle.content for handle in self._handles() if hasattr(handle, 'content')
        )

    def frames(self):
        """Return where the links are."""
        return {
            name: (*handle.position, *handle.wxyz)
            for name, handle in self._server.viser.scene._handle_from_node_name.items()
            if name.startswith('/arm') and name.count('/') == 2
        }

    def vertices(self, name):
        """Return the vertices of a surface (n, 3) [m]."""
        return np.asarray(self._server.viser.scene._handle_from_node_name[name].vertices)

    def close(self):
        self._server.close()

    def _handles(self):
        return list(self._gui._gui_input_handle_from_uuid.values()) + [
            self.page._run_text,
            self.page._episode_text,
        ]


def _label(handle):
    return getattr(handle, 'label', '')


@pytest.fixture
def shown():
    """Return a function that opens the page of a record."""
    pages = []

    def open_page(record):
        pages.append(Shown(record))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def place(page):
    return page.slider('episode').value, page.slider('step').value


# What is drawn and said


def test_the_goal_has_the_size_of_success_and_turns_green_there(record):
    interface, episode = record.interface, record.episodes[0]
    goal = episode_drawings(interface, episode, 0)['goal']
    assert goal.kind == 'ball'
    assert goal.size == interface.success_threshold
    np.testing.assert_array_equal(goal.points[0][: episode.goal.size], episode.goal)
    there = episode.achieved_goals.copy()
    there[2] = episode.goal
    there[3] = episode.goal + 2.0 * interface.success_threshold
    moved = dataclasses.replace(episode, achieved_goals=there)
    reached, left = (episode_drawings(interface, moved, step)['goal'].rgba for step in (2, 3))
    assert reached[1] > reached[0]
    assert left[1] < left[0]


def test_the_trail_leads_to_where_the_tool_is(record):
    for step in (0, STEPS):
        trail = episode_drawings(record.interface, record.episodes[1], step)['trail']
        achieved = record.episodes[1].achieved_goals[: step + 1]
        assert trail.points.shape == (step + 1, 3)
        np.testing.assert_array_equal(trail.points[:, : achieved.shape[1]], achieved)


def test_virtual_goals_are_a_cloud_around_the_goal(record):
    episode = record.episodes[1]
    cloud = episode_drawings(record.interface, episode, 0)['virtual_goals']
    assert cloud.kind == 'cloud'
    size = episode.goal.size
    np.testing.assert_array_equal(
        cloud.points[:, :size], episode.goal + np.full((3, size), 0.25, np.float32)
    )
    without = dataclasses.replace(episode, goal_offsets=episode.goal_offsets[:0])
    none = episode_drawings(record.interface, without, 0)['virtual_goals']
    assert none.points.shape == (0, 3)


def test_the_workspace_is_the_box_of_goals_or_a_rectangle(record):
    interface = record.interface
    size, edges = len(interface.goal), workspace_drawing(interface)
    pairs = edges.points.reshape(-1, 2, 3)
    assert (np.linalg.norm(pairs[:, 1] - pairs[:, 0], axis=1) > 0.0).all()
    np.testing.assert_array_equal(edges.points.min(axis=0)[:size], interface.goal_low)
    np.testing.assert_array_equal(edges.points.max(axis=0)[:size], interface.goal_high)


def test_goals_with_an_orientation_are_drawn_at_their_positions(tmp_path):
    run = RecordedRun(tmp_path / 'run', 'reach', **{'task.robot': 'ur5e', 'task.goal': 'pose'})
    run.add_episodes(1)
    record = RunRecord(run.folder)
    (episode,) = record.episodes
    drawn = episode_drawings(record.interface, episode, STEPS)
    np.testing.assert_array_equal(drawn['goal'].points, [episode.goal[:3]])
    np.testing.assert_array_equal(drawn['trail'].points, episode.achieved_goals[:, :3])
    assert drawn['virtual_goals'].points.shape == (3, 3)
    corners = workspace_drawing(record.interface).points
    np.testing.assert_array_equal(corners.min(axis=0), record.interface.goal_low[:3])
    error = np.linalg.norm(episode.achieved_goals[-1, :3] - episode.goal[:3])
    assert f'final error {1000.0 * error:.1f} mm' in episode_text(record.interface, episode)


def test_the_text_says_what_became_of_an_episode(record):
    interface, episode = record.interface, record.episodes[1]
    achieved = np.repeat(episode.goal[None], STEPS + 1, axis=0)
    achieved[-1, 0] += 0.25
    text = episode_text(
        interface, dataclasses.replace(episode, achieved_goals=achieved, success=False)
    )
    assert 'Episode 2' in text
    assert f'after {STEPS} steps' in text
    assert 'misses its goal' in text
    assert ('250.0 mm' if interface.goal[0].unit == 'm' else '0.250') in text
    assert '3 virtual goals' in text
    assert 'ends at its goal' in episode_text(
        interface, dataclasses.replace(episode, success=True)
    )


# The page


def test_it_opens_at_the_end_of_the_last_episode(record, shown):
    page = shown(record)
    assert place(page) == (3, STEPS)
    assert 'Episode 3' in page.texts()


def test_played_it_moves_the_arm_and_pauses_when_told(record, shown):
    page, period = shown(record), record.interface.control_period
    assert page.press() == 'Pause'
    assert place(page) == (3, 0)
    before = page.frames()
    page.wait(1.5 * period)
    assert place(page) == (3, 1)
    assert page.frames() != before
    assert page.press() == 'Play'
    page.wait(period)
    assert place(page) == (3, 1)


def test_sliders_choose_episode_and_step(record, shown):
    page = shown(record)
    at_end = page.frames()
    page.slider('episode').value = 1
    page.wait(0.1)
    assert place(page) == (1, STEPS)
    assert 'Episode 1' in page.texts()
    page.slider('step').value = 2
    page.wait(0.1)
    assert place(page) == (1, 2)
    assert page.frames() != at_end


def test_values_that_no_slider_has_are_put_right(record, shown):
    page = shown(record)
    page.slider('episode').value = 99
    page.wait(0.1)
    assert place(page) == (3, STEPS)
    page.slider('step').value = -7
    page.wait(0.1)
    assert place(page) == (3, 0)
    page.wait(0.1)
    assert place(page) == (3, 0)


def test_a_run_under_way_grows_on_the_page(tmp_path, shown):
    run = RecordedRun(tmp_path)
    page = shown(RunRecord(run.folder))
    assert 'Not evaluated yet' in page.texts()
    assert 'No recorded episodes' in page.texts()
    assert not page.slider('episode').visible
    run.write_curve((40, 0.25, 3.0))
    run.add_episodes(2)
    page.wait(2.0)
    assert place(page) == (2, STEPS)
    assert page.slider('episode').visible
    assert (page.slider('episode').max, page.slider('step').max) == (2, STEPS)
    assert 'Not evaluated' not in page.texts()
    assert 'No recorded episodes' not in page.texts()
    run.add_episodes(1)
    page.wait(2.0)
    assert place(page) == (3, STEPS)


def test_a_problem_with_a_file_is_written_on_the_page(tmp_path, shown):
    run = RecordedRun(tmp_path)
    run.add_episodes(1)
    page = shown(RunRecord(run.folder))
    (tmp_path / 'progress.csv').write_text('nothing')
    page.wait(2.0)
    assert 'progress.csv' in page.texts()
    assert place(page) == (1, STEPS)


def test_the_obstacles_of_a_run_on_a_robot_are_drawn(tmp_path, shown):
    file = tmp_path / 'ur5e.yaml'
    own = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    place = (0.5, -0.6, 0.3)
    scene = f'scene: {{post: {{shape: box, position: {list(place)}, size: [0.1, 0.2, 0.3]}}}}\n'
    file.write_text(own + scene)
    run = RecordedRun(tmp_path / 'run', 'reach', **{'task.robot': str(file)})
    run.add_episodes(1)
    page = shown(RunRecord(run.folder))
    vertices = page.vertices('/drawings/obstacle_0')
    np.testing.assert_allclose(vertices.mean(axis=0), place, atol=0.05)
    np.testing.assert_allclose(np.ptp(vertices, axis=0), (0.1, 0.2, 0.3), rtol=1e-5)
