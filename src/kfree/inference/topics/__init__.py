"""Topics of a document-term table: soft passes, merges, hardening; the papers' algorithm; what is asked of a fit."""
