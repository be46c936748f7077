// Makes the backend that a program was asked for.
#ifndef HIPPODROME_ENGINE_OPEN_BACKEND_H_
#define HIPPODROME_ENGINE_OPEN_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/make_backend.h"

namespace hippodrome {

// `cpu`: what does the arithmetic where the CPU is chosen. kUnavailable with the obstacle when
// `device` cannot be had; kAuto always can. `obstacle` receives why CUDA is not used
// (ChosenBackend::obstacle), where it is not null.
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(DeviceChoice device, const CpuOptions& cpu,
                                                     std::string* obstacle = nullptr);

// The same for training.
absl::StatusOr<std::unique_ptr<TrainingBackend>> OpenTrainingBackend(
    DeviceChoice device, const CpuOptions& cpu, std::string* obstacle = nullptr);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_OPEN_BACKEND_H_
