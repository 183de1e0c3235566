"""The next learning interface from a round's evidence: propose, guard, choose, retire, gate."""
