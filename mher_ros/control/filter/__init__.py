"""The safety filter: limits every motion that is asked for."""
