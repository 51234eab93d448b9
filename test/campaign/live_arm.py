"""An arm that carries out what it is told, by one of three controllers, after a delay."""

from collections import deque

from controllers import LAG, WATCHDOG
import numpy as np

RELEASED = 0.5
"""Speed of a joint that was blocked until it has caught up [rad/s]."""

RUNS_ON = 0.5
"""Time after which somebody stops an arm that runs on [s]."""


class LiveArm:
    """Where the joints truly are; time is that of the system's clock [s]."""

    def __init__(self, arm, output, home, now):
        self._arm, self._output = arm, output
        self.positions, self.velocities = np.array(home), np.zeros(len(home))
        self.controller, self.delay = 'immediate', 0.0
        self.is_blocked = False
        self._is_released = False
        self._waiting = deque()
        self._told = self._began = None
        self._heard, self._now = -np.inf, now

    def take(self, command):
        self._waiting.append(command)

    def advance(self, now):
        """Let time pass until ``now``."""
        while self._waiting and self._waiting[0].time + self.delay <= now:
            command = self._waiting.popleft()
            heard = max(self._now, command.time + self.delay)
            self._began = self.positions if self._began is None else self._desired(heard)
            self._told, self._heard = command, heard
        seconds = now - self._now
        if seconds <= 0.0:
            return
        step = np.zeros(len(self.positions))
        if self._told is not None:
            step = self._step(now, seconds)
        most = self._arm.velocity * seconds
        if self.is_blocked:
            most, self._is_released = 0.0 * most, True
        elif self._is_released:
            self._is_released = bool(np.abs(step).max() > RELEASED * seconds)
            most = np.full_like(step, RELEASED * seconds)
        step = np.clip(step, -most, most)
        self.positions = self.positions + step
        self.velocities, self._now = step / seconds, now

    def _step(self, now, seconds):
        part = 1.0 - np.exp(-seconds / LAG) if self.controller == 'lag' else 1.0
        if self._output in ('joint_velocity', 'twist'):
            # forward_command_controller has joints run on, MoveIt Servo lets nothing do so.
            runs_on = self._output == 'joint_velocity' and self.controller == 'immediate'
            longest = RUNS_ON if runs_on else WATCHDOG
            speeds = self._told.values * float(now - self._heard <= longest)
            if self._output == 'twist':
                speeds = self._arm.joint_velocities(self.positions, speeds)
            return seconds * (self.velocities + part * (speeds - self.velocities))
        if self._output == 'pose':
            gap = self._told.values - self._arm.tool(self.positions[None])[0]
            return part * self._arm.joint_velocities(self.positions, gap)
        target = self._desired(now) if self.controller == 'JTC' else self._told.values
        return part * (target - self.positions)

    def _desired(self, now):
        """Return the set-point of a controller that interpolates."""
        told = self._told
        if told is None or self._output not in ('joint_trajectory', 'joint_position'):
            return self.positions
        part = 1.0 if told.seconds <= 0.0 else min(1.0, (now - self._heard) / told.seconds)
        return self._began + part * (told.values - self._began)
