"""Re-planning: shared tables, trees and slices follow the traffic while a set runs."""
