"""How often each rule of thumb is wrong on sites that it was not made on (`make decisions`)."""
