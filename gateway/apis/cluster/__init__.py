"""Cluster APIs: ApiVersions, configs, DescribeCluster."""
