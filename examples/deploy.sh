#!/usr/bin/env bash
# Deploy a policy on your arm, in the order in which it is safe. Usage: deploy.sh my_arm.yaml runs/reach
set -euo pipefail
robot=${1:?robot file or name, such as ur5e}
policy=${2:?policy file, or the folder of a run}
file=$policy
if [ -d "$policy" ]; then file=$policy/policy.onnx; fi

# 1. What does the robot file say: limits, home, and which part of the workspace is in reach?
mher robot check "$robot" --policy "$file"

# 2. The same policy on a simulated arm with the topics of the real one. Ctrl-C ends it.
mher up deploy_sim robot:="$robot" policy:="$policy" view:=true

# 3. The real arm, without commands: markers show where it would go.
mher up deploy robot:="$robot" policy:="$policy" output:=none view:=true

# 4. The real arm, slowly. Keep a hand on the emergency stop; `mher stop` in a second terminal stops it, too.
mher up deploy robot:="$robot" policy:="$policy" speed:=0.05 view:=true
