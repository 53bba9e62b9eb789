// The functions that a file compiled for one instruction set exports.
#include "instruction_set.h"
#include "training.h"

namespace castlereg {
namespace CASTLEREG_ISA {

size_t bytes(const Problem<float>& p) { return workspace_bytes(p); }
size_t bytes(const Problem<double>& p) { return workspace_bytes(p); }
void train(const Problem<float>& p, int member, char* memory) { train_member(p, member, memory); }
void train(const Problem<double>& p, int member, char* memory) { train_member(p, member, memory); }

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
