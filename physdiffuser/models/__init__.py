"""Networks: set encoder, denoiser, decoder, vocabulary and checkpoints. Importing this loads no torch."""
