#include "tools/evaluate/open_decoder.h"

#include "engine/base/status.h"
#include "engine/open_backend.h"

namespace hippodrome {

absl::StatusOr<OpenedDecoder> OpenDecoder(const CommandLine& line, const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  OpenedDecoder opened;
  HIPPODROME_ASSIGN_OR_RETURN(opened.backend, OpenBackend(device, cpu));
  HIPPODROME_ASSIGN_OR_RETURN(opened.decoder,
                              LoadDecoderDirectory(*opened.backend, directory, weights));
  return opened;
}

absl::StatusOr<OpenedDecoder> OpenTextDecoder(const CommandLine& line,
                                              const std::string& directory) {
  HIPPODROME_ASSIGN_OR_RETURN(OpenedDecoder opened, OpenDecoder(line, directory));
  if (opened.decoder.tokenizer != nullptr) return opened;
  return FailedPrecondition(directory + " has no tokenizer files, which text needs");
}

}  // namespace hippodrome
