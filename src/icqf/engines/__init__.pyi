from .dask import Dask as Dask
