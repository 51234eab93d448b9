"""policy_node: a policy that moves an arm, its goals, and clients that send goals."""
