"""sim_node: a simulated arm with the topics of a real one."""
