"""Pictures of fitted estimators, after scikit-learn's conventions for displays."""
