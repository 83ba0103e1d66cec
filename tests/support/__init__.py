"""What tests share: slow twins, small problems, data of every family."""
