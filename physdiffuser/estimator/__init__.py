"""The scikit-learn estimator: the whole pipeline in one readable `fit`."""

from physdiffuser.estimator.regressor import PhysDiffuserRegressor

__all__ = ["PhysDiffuserRegressor"]
