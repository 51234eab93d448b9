#!/usr/bin/env bash
# Deploy a policy on your arm, step by step in a safe order. Usage: deploy.sh my_arm.yaml runs/reach
set -euo pipefail
robot=${1:?robot file or name, such as ur5e}
policy=${2:?policy file, or the folder of a run}
file=$policy
if [ -d "$policy" ]; then file=$policy/policy.onnx; fi

# 1. Check the robot file: limits, home position, and the reachable part of the workspace.
mher robot check "$robot" --policy "$file"

# 2. Run the policy on a simulated arm with the topics of the real one. Ctrl-C ends each of these steps.
mher up deploy_sim robot:="$robot" policy:="$policy" view:=true

# 3. Dry run on the real arm: no commands are sent, markers show the motion.
mher up deploy robot:="$robot" policy:="$policy" output:=none view:=true

# 4. Run it on the real arm, at 0.05 m/s. Keep a hand on the emergency stop. `mher stop` in a second terminal also stops it.
mher up deploy robot:="$robot" policy:="$policy" speed:=0.05 view:=true
