// The same code for every instruction set; the first one that the processor supports is used.
#pragma once

#include "problem.h"

#define CASTLEREG_DECLARE(ISA)                                                   \
    namespace castlereg {                                                        \
    namespace ISA {                                                              \
    size_t bytes(const Problem<float>&);                                         \
    size_t bytes(const Problem<double>&);                                        \
    void train(const Problem<float>&, int member, char* memory);                 \
    void train(const Problem<double>&, int member, char* memory);                \
    }                                                                            \
    }

CASTLEREG_DECLARE(avx512)
CASTLEREG_DECLARE(avx2)
CASTLEREG_DECLARE(portable)
