"""Questions by authors who knew nothing of the product."""
