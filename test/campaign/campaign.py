"""
Random sequences over DDS against policy_node, judged from outside: `make campaign`.

Each output has a process that plays the arm and judges, and a policy_node, in a ROS domain of
their own. Prints a table, writes a report, and ends with 1 if there was any violation.
"""

import argparse
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile

from campaign_options import add_options, numbers_of
from sequences import draw

OUTPUTS = 'joint_position,joint_trajectory,joint_velocity,twist'
HELD = 0.15
"""Part of the holds of a process that may hit it while it sends."""
FOLDER = Path(__file__).parent


def run(options, arguments):
    """Run all arms beside each other; return their reports."""
    out = Path(options.out or tempfile.mkdtemp(prefix='mher_campaign_'))
    out.mkdir(parents=True, exist_ok=True)
    # The judges import nothing of mher_ros, so the policies come from a process of their own.
    policies = sorted({draw(options.seed, number).policy for number in numbers_of(options)})
    write = [sys.executable, str(FOLDER / 'campaign_policies.py'), str(out), *policies]
    subprocess.run(write, check=True)
    arms = []
    outputs = options.outputs.split(',')
    first = int(os.environ.get('ROS_DOMAIN_ID') or 42)
    domains = options.domains or ','.join(str(first + i) for i in range(len(outputs)))
    for output, domain in zip(outputs, domains.split(','), strict=True):
        (out / f'{output}.json').unlink(missing_ok=True)
        environment = {
            **os.environ,
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            'ROS_DOMAIN_ID': domain,
        }
        command = [sys.executable, str(FOLDER / 'campaign_arm.py'), '--output', output]
        command += ['--policies', str(out), '--out', str(out), *arguments]
        arms.append(subprocess.Popen(command, env=environment))
    try:
        codes = [arm.wait() for arm in arms]
    finally:
        for arm in arms:
            arm.terminate()
            arm.wait()
    if any(codes):
        sys.exit(f'an arm of the campaign failed: exit codes {codes}; logs are in {out}')
    reports = [json.loads((out / f'{output}.json').read_text()) for output in outputs]
    (out / 'campaign.json').write_text(json.dumps({'seed': options.seed, 'outputs': reports}))
    return out, reports


def table(reports):
    """Return the lines that people read."""
    lines = [f'{"output":17} {"sequences":>9} {"commands":>9}  violations (worst of its limit)']
    for report in reports:
        worst = {}
        for one in report['violations']:
            count, most = worst.get(one['kind'], (0, one))
            worst[one['kind']] = count + 1, max(most, one, key=_ratio)
        head = f'{report["output"]:17} {report["sequences"]:9} {report["commands"]:9}'
        bad = len({one['sequence'] for one in report['violations']})
        if not worst:
            lines.append(f'{head}  none')
        else:
            lines.append(f'{head}  in {bad} sequences:')
            head = ' ' * len(head)
        for kind, (count, most) in sorted(worst.items()):
            lines.append(
                f'{head}  {count:6} {kind}: {most["value"]:.4g} of {most["limit"]:.4g} '
                f'in sequence {most["sequence"]} ({", ".join(most["kinds"])})'
            )
        if report['continued']:
            lines.append(
                f'{" " * 37}  {report["continued"]} of {report["held"]} motions went on after the '
                f'process was held for over 0.2 s (allowed: {_allowed(report):.0f})'
            )
    return lines


def is_bad(report):
    """Return whether a report has anything to object to."""
    return bool(report['violations']) or report['continued'] > _allowed(report)


def _allowed(report):
    """Return how many motions may go on after a hold: one may come between clock and sending."""
    return 1 + HELD * report['held']


def _ratio(one):
    return one['value'] / one['limit']


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('ended'))
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument('--outputs', default=OUTPUTS, help='separated by commas')
    parser.add_argument('--domains', help='ROS domains of the outputs; from ROS_DOMAIN_ID on')
    parser.add_argument('--out', help='folder for reports and logs; default: a new one')
    options = parser.parse_args()
    words = [
        word
        for name in ('seed', 'sequences', 'first', 'only', 'robot', 'state_rate', 'command_rate')
        + ('joint_acceleration',)
        if (value := getattr(options, name)) is not None
        for word in (f'--{name.replace("_", "-")}', str(value))
    ]
    out, reports = run(options, words)
    print('\n'.join(table(reports)))
    print(f'reports and logs: {out}')
    if any(map(is_bad, reports)):
        print(
            f'one of them again: campaign.py --seed {options.seed} --outputs OUTPUT --only NUMBER'
        )
        sys.exit(1)


if __name__ == '__main__':
    main()
