"""The suite that gpytorch runs on its own kernels, on tokens."""

from __future__ import annotations

import unittest

import pytest
import torch
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase

from seqopt.encoding import Alphabet
from seqopt.kernels import (
    AutoregressiveKernel,
    DegenerateKernel,
    HammingKernel,
    HelixKernel,
    HierarchicalKernel,
    NgramKernel,
    OnField,
    Product,
    SameLevelKernel,
    SubsequenceKernel,
    SubstitutionKernel,
    Sum,
)


def token_rows(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, 6, shape, generator=generator).double()


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestSubsequenceKernel(BaseKernelTestCase, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return SubsequenceKernel(3, **kwargs)

    def create_data_no_batch(self):
        return token_rows(50, 10)

    def create_data_single_batch(self):
        return token_rows(2, 50, 2)

    def create_data_double_batch(self):
        return token_rows(3, 2, 50, 2)


class TestPartitionedKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return SubsequenceKernel(2, order_weights=[1.0, 0.5], normalize=False, partitions=2, **kwargs)


class TestSumAndProduct(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        # Columns are chosen by the part that reads them.
        strings = OnField(SubsequenceKernel(2, **kwargs), "tokens", slice(None))
        return Sum(Product(strings, SubsequenceKernel(3, **kwargs)), NgramKernel(2, **kwargs))


class LevelSuite(BaseKernelTestCase):
    """On rows of one column, numbers of three levels."""

    def create_data_no_batch(self):
        return token_rows(50, 1) % 3

    def create_data_single_batch(self):
        return token_rows(2, 50, 1) % 3

    def create_data_double_batch(self):
        return token_rows(3, 2, 50, 1) % 3

    def test_active_dims_list(self):
        self.skipTest("one column has no others to leave out")

    def test_active_dims_range(self):
        self.skipTest("one column has no others to leave out")

    def test_kernel_dtype_device(self):
        self.skipTest("parameters are of double precision from the start, as those of all kernels on levels")


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestAutoregressiveKernel(LevelSuite, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return AutoregressiveKernel(3, **kwargs)


@pytest.mark.filterwarnings("ignore:The last_dim_is_batch argument")
class TestDegenerateKernel(LevelSuite, unittest.TestCase):
    def create_kernel_no_ard(self, **kwargs):
        return DegenerateKernel("linear", 0.0, 2.0, **kwargs)


class TestHierarchicalKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        plates = OnField(SameLevelKernel(**kwargs), "plate", slice(0, 1))
        return HierarchicalKernel(OnField(SubsequenceKernel(2, **kwargs), "tokens", slice(None)), plates)

    def test_active_dims_list(self):
        self.skipTest("fields say which columns are read")

    def test_active_dims_range(self):
        self.skipTest("fields say which columns are read")

    def test_kernel_dtype_device(self):
        self.skipTest("variances of departures are of double precision from the start")


class TestHammingKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return HammingKernel(**kwargs)


class TestHelixKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        kernel = HelixKernel(**kwargs)
        kernel.read_by(Alphabet("ACGT"))
        return kernel


class TestSubstitutionKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return SubstitutionKernel(**kwargs)


class TestSumOfSubstitutions(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return SubstitutionKernel(form="sum", **kwargs)
