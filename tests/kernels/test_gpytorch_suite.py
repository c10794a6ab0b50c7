"""The suite that gpytorch runs on its own kernels, on tokens."""

from __future__ import annotations

import unittest

import pytest
import torch
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase

from seqopt.kernels import HammingKernel, NgramKernel, OnField, Product, SubsequenceKernel, SubstitutionKernel, Sum


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


class TestHammingKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return HammingKernel(**kwargs)


class TestSubstitutionKernel(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return SubstitutionKernel(**kwargs)


class TestSumOfSubstitutions(TestSubsequenceKernel):
    def create_kernel_no_ard(self, **kwargs):
        return SubstitutionKernel(form="sum", **kwargs)
