#define CASTLEREG_ISA avx512
#include "compiled.h"
