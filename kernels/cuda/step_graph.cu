// CudaBackend::Replay: a step of many small kernels becomes one launch.
#include "kernels/cuda/cuda_backend.h"

namespace hippodrome {
namespace {

class StepGraph final : public Graph {
 public:
  ~StepGraph() override {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }

  bool captured() const { return executable_ != nullptr; }

  // False if the work could not be captured; then none of it was done. The stream works as before
  // in any case, also when `work` throws.
  bool Capture(cudaStream_t stream, const std::function<void()>& work) {
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
      return false;
    }
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    const bool made = cudaGraphInstantiate(&executable_, graph, 0) == cudaSuccess;
    cudaGraphDestroy(graph);
    return made;
  }

  cudaError_t Launch(cudaStream_t stream) const { return cudaGraphLaunch(executable_, stream); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

void CudaBackend::Replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
  if (graph == nullptr) {
    work();
    graph = std::make_unique<StepGraph>();
    return;
  }
  auto& step = static_cast<StepGraph&>(*graph);
  if (!step.captured() && !step.Capture(device_.stream(), work)) {
    device_.Note(cudaErrorStreamCaptureInvalidated, "step graph");
    return;
  }
  device_.Note(step.Launch(device_.stream()), "step graph");
}

}  // namespace hippodrome
