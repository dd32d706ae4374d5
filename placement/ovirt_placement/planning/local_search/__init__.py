"""Repairs rule by rule by legal migrations alone, where no way was found to an end chosen beforehand."""
