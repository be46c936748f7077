// example ADDRESS PROMPT: writes a text with the decoder of a server, as it is made.
#include <hippodrome/client.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: example ADDRESS PROMPT\n";
    return 2;
  }
  hippodrome::client::Client client(argv[1]);
  hippodrome::v1::GenerateRequest request;
  request.set_text(argv[2]);
  request.set_max_tokens(40);
  request.set_seed(1);  // so that a stream that breaks off can be sent again

  auto generation = client.Generate(request);
  hippodrome::v1::GenerateResponse response;
  while (generation->Read(&response)) std::cout << response.text() << std::flush;
  std::cout << "\n";
  const grpc::Status status = generation->Finish();
  if (!status.ok()) std::cerr << "example: " << status.error_message() << "\n";
  return status.ok() ? 0 : 1;
}
