// CudaBackend::Replay: a step of many small kernels becomes one launch.
#include "kernels/cuda/cuda_backend.h"

namespace hippodrome {
namespace {

constexpr const char* kName = "step graph";

// What `work` gave to a stream that captures, which ends with it.
class CapturedGraph {
 public:
  CapturedGraph(cudaStream_t stream, const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      End(stream);
      cudaGetLastError();
      Destroy();
      throw;
    }
    End(stream);
  }
  ~CapturedGraph() { Destroy(); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  // `executable` stays null where this fails, or the capture did.
  cudaError_t Instantiate(cudaGraphExec_t* executable) const {
    if (error_ != cudaSuccess) return error_;
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&made, graph_, 0);
    if (error == cudaSuccess) *executable = made;
    return error;
  }

 private:
  void End(cudaStream_t stream) { error_ = cudaStreamEndCapture(stream, &graph_); }
  void Destroy() {
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  cudaGraph_t graph_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

class StepGraph final : public Graph {
 public:
  ~StepGraph() override {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }

  bool captured() const { return executable_ != nullptr; }

  // An error if the work could not be captured; then none of it was done. The stream works as
  // before in any case, also when `work` throws.
  cudaError_t Capture(cudaStream_t stream, const std::function<void()>& work) {
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error == cudaSuccess) {
      const CapturedGraph graph(stream, work);
      error = graph.Instantiate(&executable_);
    }
    if (error != cudaSuccess) cudaGetLastError();  // which later calls would be blamed for
    return error;
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
  if (!step.captured()) {
    const cudaError_t error = step.Capture(device_.stream(), work);
    device_.Note(error, kName);
    if (error != cudaSuccess) return;
  }
  device_.Note(step.Launch(device_.stream()), kName);
}

}  // namespace hippodrome
