#define CASTLEREG_ISA portable
#include "compiled.h"
