"""HTTP without business: how errors look, what every response carries, how much a body may hold."""
