#ifndef HIPPODROME_KERNELS_CPU_INSTRUCTION_SET_H_
#define HIPPODROME_KERNELS_CPU_INSTRUCTION_SET_H_

namespace hippodrome {

// What the CPU backend uses on this machine, as Highway calls it: "AVX3_DL", "AVX2", "SCALAR".
const char* CpuInstructionSet();

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_INSTRUCTION_SET_H_
