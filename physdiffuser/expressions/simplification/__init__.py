"""Normal forms and the arrangement in which a physicist writes a formula."""
