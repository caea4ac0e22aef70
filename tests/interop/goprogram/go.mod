module muster/tests/interop/goprogram

go 1.26.0
