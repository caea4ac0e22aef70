"""What pages show: protobuf answers in, frozen dataclasses for the templates out."""
