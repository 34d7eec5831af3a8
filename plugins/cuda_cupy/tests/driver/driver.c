// A driver of CUDA, a runtime and a cuBLAS that do nothing and say that all went well, but for what CUDA always refuses:
// grids that cannot be, and calls that end a capture. Memory of the device is memory of the host, zero at first, which
// copies and fills do reach, unless it is `idle`; kernels and products are counted, and write nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

unsigned long long launches, products, strayed;  // the last: what went to another stream than `expected`
void *expected;
int idle;
// Of a launch the first `watched` parameters are kept, as words.
int watched;
unsigned long long seen[64];
static void *captured, *of_cublas;  // cuBLAS's is that of all handles: there is one program
enum { kInvalid = 1, kUnsupported = 900, kImplicit = 906 };
static void goes_to(void *stream) { strayed += expected && stream != expected; }
static uintptr_t next = 0x100000;
static int made(void **at) { return *at = (void *)(next += 16), 0; }
int nothing(void) { return 0; }

// ---- the driver ----
int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared, void *stream,
                   void **parameters) {
  if (!x || x >> 31 || !y || y > 65535 || !z || z > 65535) return kInvalid;
  if (!a || !b || !c || c > 64 || (unsigned long long)a * b * c > 1024 || shared > 48 << 10) return kInvalid;
  for (int i = 0; i < watched; ++i) memcpy(seen + i, parameters[i], 8);
  return goes_to(stream), ++launches, 0;
}
int cuLaunchCooperativeKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                              void *stream, void **parameters) {
  if ((unsigned long long)x * y * z * ((a * b * c + 255) / 256) > 2 * 132) return 720;  // not all blocks at a time
  return cuLaunchKernel(kernel, x, y, z, a, b, c, shared, stream, parameters);
}
int cuCtxGetCurrent(void **at) { return *at = (void *)16, 0; }
int cuModuleLoadData(void **at) { return made(at); }
int cuModuleUnload(void) { return 0; }
int cuModuleGetFunction(void **at) { return made(at); }
int cuFuncGetAttribute(int *value, int which) { return *value = which ? 0 : 1024, 0; }
int cuGetErrorName(int error, const char **text) { return *text = "an error of the stub", 0; }
int cuGetErrorString(int error, const char **text) { return *text = "an error of the stub", 0; }

// ---- the runtime ----
int cudaGetDeviceCount(int *n) { return *n = 1, 0; }
int cudaGetDevice(int *n) { return *n = 0, 0; }
int cudaDriverGetVersion(int *n) { return *n = 13000, 0; }
int cudaRuntimeGetVersion(int *n) { return *n = 13000, 0; }
int cudaDeviceGetAttribute(int *value, int which) { return *value = which == 75 ? 9 : which == 76 ? 0 : 132, 0; }
int cudaGetDeviceProperties(char *at) {
  memset(at, 0, 960);
  strcpy(at, "a GPU that computes nothing");
  *(size_t *)(at + 288) = (size_t)80 << 30;
  return 0;
}
const char *cudaGetErrorName(int error) { return "an error of the stub"; }
const char *cudaGetErrorString(int error) { return "an error of the stub"; }
int cudaMalloc(void **at, size_t n) { return n >> 36 || posix_memalign(at, 512, n + !n) ? 2 : n >> 24 ? 0 : !memset(*at, 0, n); }
int cudaFree(void *at) { return free(at), 0; }
int cudaMemGetInfo(size_t *free, size_t *all) { return *free = (size_t)70 << 30, *all = (size_t)80 << 30, 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream) {
  return goes_to(stream), idle ? 0 : memcpy(to, from, n), 0;
}
int cudaMemcpy(void *to, const void *from, size_t n) { return captured ? kImplicit : (memcpy(to, from, n), 0); }
int cudaMemsetAsync(void *to, int value, size_t n, void *stream) { return goes_to(stream), idle ? 0 : memset(to, value, n), 0; }
int cudaMemset(void *to, int value, size_t n) { return captured ? kImplicit : (memset(to, value, n), 0); }
int cudaDeviceSynchronize(void) { return captured ? kUnsupported : 0; }
int cudaStreamSynchronize(void *stream) { return captured && stream == captured ? kUnsupported : 0; }
int cudaStreamQuery(void *stream) { return captured && stream == captured ? kUnsupported : 0; }
int cudaStreamCreate(void **at) { return made(at); }
int cudaStreamCreateWithFlags(void **at) { return made(at); }
int cudaStreamCreateWithPriority(void **at) { return made(at); }
int cudaEventCreate(void **at) { return made(at); }
int cudaEventCreateWithFlags(void **at) { return made(at); }
int cudaEventElapsedTime(float *at) { return *at = 1, 0; }

// Memory of the host that is locked stays so: there is little of it.
static struct {
  char *begin, *end;
} locked[1024];
static int count;
int cudaHostAlloc(void **at, size_t n) {
  if (count == 1024 || posix_memalign(at, 512, n)) return 2;
  locked[count].begin = *at, locked[count++].end = (char *)*at + n;
  return 0;
}
struct attributes {
  int type, device;
  void *on_device, *on_host;
};
int cudaPointerGetAttributes(struct attributes *found, const char *at) {
  memset(found, 0, sizeof *found);
  for (int i = 0; i < count; ++i) found->type |= at >= locked[i].begin && at < locked[i].end;
  return 0;
}

int cudaStreamBeginCapture(void *stream) { return captured = stream, 0; }
int cudaStreamIsCapturing(void *stream, int *at) { return *at = stream && stream == captured, 0; }
int cudaStreamEndCapture(void *stream, void **graph) { return captured = 0, made(graph); }
int cudaGraphInstantiate(void **at) { return made(at); }

// ---- NVRTC, which is only asked whether it is there, and cuBLAS ----
int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0; }
int cublasCreate_v2(void **at) { return captured ? 1 : made(at); }
int cublasSetStream_v2(void *handle, void *stream) { return of_cublas = stream, 0; }
int cublasGemmEx(void) { return goes_to(of_cublas), ++products, 0; }
int cublasGemmStridedBatchedEx(void) { return goes_to(of_cublas), ++products, 0; }
int cublasGemmEx_64(void) { return goes_to(of_cublas), ++products, 0; }
int cublasGemmStridedBatchedEx_64(void) { return goes_to(of_cublas), ++products, 0; }
int cublasSetWorkspace_v2(void) { return 0; }
int cublasLtMatmulDescCreate(void **at) { return made(at); }
int cublasLtMatmulDescDestroy(void) { return 0; }
int cublasLtMatmulDescSetAttribute(void) { return 0; }
int cublasLtMatrixLayoutCreate(void **at) { return made(at); }
int cublasLtMatrixLayoutDestroy(void) { return 0; }
int cublasLtMatmulPreferenceCreate(void **at) { return made(at); }
int cublasLtMatmulPreferenceDestroy(void) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void) { return 0; }
int cublasLtMatmulAlgoGetHeuristic(void *a, void *b, void *c, void *d, void *e, void *f, void *g, int most, void *at, int *found) {
  return *found = 1, 0;
}
int cublasLtMatmul(void *how, void *what, void *alpha, void *a, void *of_a, void *b, void *of_b, void *beta, void *c, void *of_c, void *d,
                   void *of_d, void *algorithm, void *room, size_t size, void *stream) {
  return goes_to(stream), ++products, 0;
}
