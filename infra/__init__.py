"""The AWS CDK app that deploys Groundwire: one stack per environment."""
