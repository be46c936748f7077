// The pickle parser and what is read from its nodes.
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_state_dict.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto pickle = hippodrome::ParsePickle(std::as_bytes(std::span(data, size)));
  if (!pickle.ok()) return 0;
  (void)hippodrome::Describe(*pickle, (*pickle)[pickle->root]);
  (void)hippodrome::ListTorchStorages(*pickle);
  const auto state = hippodrome::ReadTorchStateDict(*pickle);
  if (!state.ok()) return 0;
  for (const hippodrome::TorchTensor& tensor : state->tensors) (void)tensor.contiguous();
  return 0;
}
