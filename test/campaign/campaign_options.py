"""Options that the campaign and each of its arms take."""


def add_options(parser):
    """Add what both this and the command over all arms take."""
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--sequences', type=int, default=1000, help='how many for each output')
    parser.add_argument('--first', type=int, default=0, help='number of the first')
    parser.add_argument('--only', type=int, help='number of the only one to run')
    parser.add_argument('--robot', default='ur5e')
    parser.add_argument('--state-rate', type=float, help='joint states in a second [Hz]')
    parser.add_argument('--command-rate', type=float, help="default: the robot's [Hz]")
    parser.add_argument(
        '--joint-acceleration',
        type=float,
        default=4.0,
        help='limit of a joint for which the robot file gives none [rad/s^2]',
    )


def numbers_of(options):
    """Return the numbers of the sequences to run."""
    if options.only is not None:
        return [options.only]
    return range(options.first, options.first + options.sequences)
