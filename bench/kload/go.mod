module muster/bench/kload

go 1.24
