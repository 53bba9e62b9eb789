#define CASTLEREG_ISA avx2
#include "compiled.h"
