"""The whole job on a study's files: read, choose k and β, fit, score, and write the results."""
