#include "tests/cuda_on_cpu/stream.h"

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/runtime_watch.h"

using Work = std::vector<std::function<void()>>;

struct CUstream_st {
  int device = cuda_on_cpu::CurrentDevice();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id capturing_thread;
  Work captured;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
};
struct CUgraph_st {
  Work work;
};
struct CUgraphExec_st {
  Work work;
};

namespace cuda_on_cpu {
namespace {

std::mutex mutex;  // guards the streams
std::set<cudaStream_t> streams;

cudaError_t instantiation_error = cudaSuccess;  // of the next one

// REQUIRES: the mutex is held. True for the default stream, which is never captured.
bool IsKnown(cudaStream_t stream) { return stream == nullptr || streams.contains(stream); }

bool IsCaptured(cudaStream_t stream) {
  return stream != nullptr && stream->capture != cudaStreamCaptureStatusNone;
}

// A captured stream cannot be waited for.
cudaError_t WaitFor(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (!IsKnown(stream)) return Noted(cudaErrorInvalidResourceHandle);
  if (!IsCaptured(stream)) return cudaSuccess;
  stream->capture = cudaStreamCaptureStatusInvalidated;
  return Noted(cudaErrorStreamCaptureUnsupported);
}

}  // namespace

void FailNextInstantiation(cudaError_t error) { instantiation_error = error; }

cudaError_t Submit(cudaStream_t stream, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex);
    if (!IsKnown(stream)) return Noted(cudaErrorInvalidResourceHandle);
    if (IsCaptured(stream)) {
      if (stream->capture == cudaStreamCaptureStatusInvalidated) {
        return Noted(cudaErrorStreamCaptureInvalidated);
      }
      stream->captured.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  const DeviceAccess access;
  work();
  return cudaSuccess;
}

bool IsHere(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  return stream == nullptr || !IsKnown(stream) || stream->device == CurrentDevice();
}

cudaError_t RefuseWhileCapturing() {
  const std::lock_guard lock(mutex);
  bool refused = false;
  for (const cudaStream_t stream : streams) {
    if (!IsCaptured(stream) || stream->mode == cudaStreamCaptureModeRelaxed) continue;
    if (stream->mode == cudaStreamCaptureModeThreadLocal &&
        stream->capturing_thread != std::this_thread::get_id()) {
      continue;
    }
    stream->capture = cudaStreamCaptureStatusInvalidated;
    refused = true;
  }
  return refused ? Noted(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::mutex;
using cuda_on_cpu::Noted;
using cuda_on_cpu::streams;

// ---- Streams ------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(mutex);
  *stream = *streams.insert(new CUstream_st).first;
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (streams.erase(stream) == 0) return Noted(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return cuda_on_cpu::WaitFor(stream); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cuda_on_cpu::WaitFor(stream); }

// ---- Events -------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cuda_on_cpu::Submit(stream, [=] {
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->recorded || !end->recorded) return Noted(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

// ---- Graphs -------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(mutex);
  if (stream == nullptr) return Noted(cudaErrorStreamCaptureUnsupported);
  if (!streams.contains(stream)) return Noted(cudaErrorInvalidResourceHandle);
  if (cuda_on_cpu::IsCaptured(stream)) return Noted(cudaErrorIllegalState);
  stream->capture = cudaStreamCaptureStatusActive;
  stream->mode = mode;
  stream->capturing_thread = std::this_thread::get_id();
  stream->captured.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  if (!cuda_on_cpu::IsKnown(stream)) return Noted(cudaErrorInvalidResourceHandle);
  if (!cuda_on_cpu::IsCaptured(stream)) return Noted(cudaErrorIllegalState);
  const bool spoilt = stream->capture == cudaStreamCaptureStatusInvalidated;
  stream->capture = cudaStreamCaptureStatusNone;
  if (spoilt) return Noted(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(stream->captured)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex);
  if (!cuda_on_cpu::IsKnown(stream)) return Noted(cudaErrorInvalidResourceHandle);
  *status = stream == nullptr ? cudaStreamCaptureStatusNone : stream->capture;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = nullptr;
  const cudaError_t error = std::exchange(cuda_on_cpu::instantiation_error, cudaSuccess);
  if (error != cudaSuccess) return Noted(error);
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const auto& work : executable->work) {
    const cudaError_t error = cuda_on_cpu::Submit(stream, work);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return Noted(cudaErrorNotSupported);
  *count = graph->work.size();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
