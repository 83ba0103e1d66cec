"""Clusters shared by groups of rows: the hard HDP."""
