"""From the Pareto archive to the answer: finalists refined, deduplicated, chosen, scored and described."""
