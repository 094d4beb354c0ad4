"""The suite `measured`: tables of measurements, their textbook laws, and a score of answers to them."""
