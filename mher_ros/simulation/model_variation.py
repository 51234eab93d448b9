"""Changes the compiled model of an arm to one that was drawn, in place."""

from collections.abc import Sequence

from mher_ros.simulation.plant_draw import PlantDraw
import mujoco

CHANGED = (
    'body_pos',
    'body_mass',
    'body_inertia',
    'dof_frictionloss',
    'actuator_gainprm',
    'actuator_biasprm',
)
"""Arrays of the model that differ between plants; MuJoCo derives others from them."""
PAYLOAD, RADIUS = 'payload', 0.05
"""Body of a payload, a ball of this radius [m]."""


class ModelVariation:
    """
    The nominal values of a model, and what is drawn instead of them.

    What is drawn is known to the simulation only, not to the controllers of the arm.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        dofs: Sequence[int],
        actuators: Sequence[int],
        bodies: Sequence[int],
    ) -> None:
        """
        Take the model as the nominal one.

        ``dofs`` and ``actuators``: those of the commanded joints (k); ``bodies``: those that may
        be elsewhere in their parents' frames (b).
        """
        self._model, self._scratch = model, mujoco.MjData(model)
        self._nominal = {name: getattr(model, name).copy() for name in CHANGED}
        self._dofs, self._actuators = list(dofs), list(actuators)
        self._bodies = list(bodies)
        self.moves_links = False
        """Whether bodies are elsewhere than in the nominal model."""

    def apply(self, draw: PlantDraw) -> None:
        """Change the model from any former plant to this one."""
        model, nominal = self._model, self._nominal
        for name, values in nominal.items():
            getattr(model, name)[:] = values
        model.body_pos[self._bodies] += draw.link_errors
        self.moves_links = bool(draw.link_errors.any())
        if draw.payload:
            set_payload(model, draw.payload)
        model.dof_frictionloss[self._dofs] += draw.friction
        # The position loop, outside of MuJoCo, has its own gain. The drives know the damping of
        # joints.
        model.actuator_gainprm[self._actuators, 0] *= draw.damping
        model.actuator_biasprm[self._actuators, 1] *= draw.damping
        known = model.dof_damping[self._dofs]
        gains = known - nominal['actuator_biasprm'][self._actuators, 2]
        model.actuator_biasprm[self._actuators, 2] = known - gains * draw.damping
        mujoco.mj_setConst(model, self._scratch)


def set_payload(model: mujoco.MjModel, mass: float) -> None:
    """Set the mass of a model's payload [kg]; ``mj_setConst`` must follow."""
    body = model.body(PAYLOAD).id
    model.body_mass[body], model.body_inertia[body] = mass, moment(mass)


def moment(mass: float) -> float:
    """Return the moment of inertia of a payload [kg m^2]."""
    return 0.4 * mass * RADIUS**2
