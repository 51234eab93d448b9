"""train_node: learning with an arm over topics."""
