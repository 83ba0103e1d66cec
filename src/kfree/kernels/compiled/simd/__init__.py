"""What the compiled kernels are built of, spelled out in LLVM vectors."""
