"""Tables of measurements: reading them, checking them, naming their columns."""

from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.data.loading import load_dataset
from physdiffuser.data.readers.csv_safe import neutralise
from physdiffuser.data.readers.formats import read_table
from physdiffuser.data.table import Table, TableColumn
from physdiffuser.io.display import visible

__all__ = [
    "Column",
    "Dataset",
    "Table",
    "TableColumn",
    "assign_aliases",
    "dataset_from_arrays",
    "load_dataset",
    "neutralise",
    "read_table",
    "visible",
]
