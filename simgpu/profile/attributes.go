// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"maps"
	"slices"
)

// attribute is one CUdevice_attribute. Numbers, names and the release that
// brought them: cuda.h of CUDA 11.0 to 13.5.
type attribute struct {
	number int
	since  int // CUDA version; 0: before 11.0
	name   string
	value  func(g *GPU) int
}

// AttributeSlots is one more than the greatest CUdevice_attribute that is known.
const AttributeSlots = 162

// f is a value of the card, c the same on all cards, since one that came with a
// compute capability. What the simulator cannot do is 0 on all of them.
func f(value func(g *GPU) int) func(*GPU) int { return value }

func c(value int) func(*GPU) int { return func(*GPU) int { return value } }

func since(capability, value int) func(*GPU) int {
	return func(g *GPU) int { return value * yes(g.Capability.Number() >= capability) }
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Attributes returns the value of every device attribute, by number. Those of the
// device's place (PCI bus, device, domain; board group) are 0: the host sets them.
func (g *GPU) Attributes() (out [AttributeSlots]int32) {
	for _, a := range attributes {
		v, ok := g.Override[a.name]
		if !ok {
			v = a.value(g)
		}
		out[a.number] = int32(v) //nolint:gosec // profiles are bounded
	}
	return out
}

// AttributesKnown returns one more than the greatest attribute that a driver of a
// CUDA version knows; it answers "invalid value" for others.
func AttributesKnown(cuda int) int {
	n := 1
	for _, a := range attributes {
		if a.since <= cuda {
			n = max(n, a.number+1)
		}
	}
	return n
}

// checkOverride reports the first name that is none of an attribute.
func (g *GPU) checkOverride() error {
	names := make([]string, 0, len(attributes))
	for _, a := range attributes {
		names = append(names, a.name)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Override)) {
		if !slices.Contains(names, name) {
			return fieldError(join("attributes", name), "no such attribute%s", didYouMean(name, names))
		}
	}
	return nil
}

var attributes = []attribute{
	{1, 0, "MAX_THREADS_PER_BLOCK", c(1024)},
	{2, 0, "MAX_BLOCK_DIM_X", c(1024)},
	{3, 0, "MAX_BLOCK_DIM_Y", c(1024)},
	{4, 0, "MAX_BLOCK_DIM_Z", c(64)},
	{5, 0, "MAX_GRID_DIM_X", c(1<<31 - 1)},
	{6, 0, "MAX_GRID_DIM_Y", c(65535)},
	{7, 0, "MAX_GRID_DIM_Z", c(65535)},
	{8, 0, "MAX_SHARED_MEMORY_PER_BLOCK", f(func(g *GPU) int { return int(g.Multiprocessor.BlockSharedBytes) })},
	{9, 0, "TOTAL_CONSTANT_MEMORY", c(65536)},
	{10, 0, "WARP_SIZE", c(32)},
	{11, 0, "MAX_PITCH", c(1<<31 - 1)},
	{12, 0, "MAX_REGISTERS_PER_BLOCK", c(65536)},
	{13, 0, "CLOCK_RATE", f(func(g *GPU) int { return 1000 * cmp.Or(g.Clocks.Boost, g.Clocks.SMMax) })},
	{14, 0, "TEXTURE_ALIGNMENT", c(512)},
	{15, 0, "GPU_OVERLAP", f(func(g *GPU) int { return yes(g.Multiprocessor.AsyncEngines > 0) })},
	{16, 0, "MULTIPROCESSOR_COUNT", f(func(g *GPU) int { return g.Multiprocessor.Count })},
	{17, 0, "KERNEL_EXEC_TIMEOUT", c(0)},
	{18, 0, "INTEGRATED", c(0)},
	{19, 0, "CAN_MAP_HOST_MEMORY", c(1)},
	{20, 0, "COMPUTE_MODE", c(0)},
	{21, 0, "MAXIMUM_TEXTURE1D_WIDTH", c(131072)},
	{22, 0, "MAXIMUM_TEXTURE2D_WIDTH", c(131072)},
	{23, 0, "MAXIMUM_TEXTURE2D_HEIGHT", c(65536)},
	{24, 0, "MAXIMUM_TEXTURE3D_WIDTH", c(16384)},
	{25, 0, "MAXIMUM_TEXTURE3D_HEIGHT", c(16384)},
	{26, 0, "MAXIMUM_TEXTURE3D_DEPTH", c(16384)},
	{27, 0, "MAXIMUM_TEXTURE2D_LAYERED_WIDTH", c(32768)},
	{28, 0, "MAXIMUM_TEXTURE2D_LAYERED_HEIGHT", c(32768)},
	{29, 0, "MAXIMUM_TEXTURE2D_LAYERED_LAYERS", c(2048)},
	{30, 0, "SURFACE_ALIGNMENT", c(512)},
	{31, 0, "CONCURRENT_KERNELS", c(1)},
	{32, 0, "ECC_ENABLED", f(func(g *GPU) int { return yes(g.ECC.Current == "enabled") })},
	{33, 0, "PCI_BUS_ID", c(0)},
	{34, 0, "PCI_DEVICE_ID", c(0)},
	{35, 0, "TCC_DRIVER", c(0)},
	{36, 0, "MEMORY_CLOCK_RATE", f(func(g *GPU) int { return 1000 * g.Clocks.MemoryMax })},
	{37, 0, "GLOBAL_MEMORY_BUS_WIDTH", f(func(g *GPU) int { return g.Memory.BusWidth })},
	{38, 0, "L2_CACHE_SIZE", f(func(g *GPU) int { return int(g.Multiprocessor.L2Bytes) })},
	{39, 0, "MAX_THREADS_PER_MULTIPROCESSOR", f(func(g *GPU) int { return g.Multiprocessor.MaxThreads })},
	{40, 0, "ASYNC_ENGINE_COUNT", f(func(g *GPU) int { return g.Multiprocessor.AsyncEngines })},
	{41, 0, "UNIFIED_ADDRESSING", c(1)},
	{42, 0, "MAXIMUM_TEXTURE1D_LAYERED_WIDTH", c(32768)},
	{43, 0, "MAXIMUM_TEXTURE1D_LAYERED_LAYERS", c(2048)},
	{44, 0, "CAN_TEX2D_GATHER", c(1)},
	{45, 0, "MAXIMUM_TEXTURE2D_GATHER_WIDTH", c(32768)},
	{46, 0, "MAXIMUM_TEXTURE2D_GATHER_HEIGHT", c(32768)},
	{47, 0, "MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE", c(8192)},
	{48, 0, "MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE", c(8192)},
	{49, 0, "MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE", c(32768)},
	{50, 0, "PCI_DOMAIN_ID", c(0)},
	{51, 0, "TEXTURE_PITCH_ALIGNMENT", c(32)},
	{52, 0, "MAXIMUM_TEXTURECUBEMAP_WIDTH", c(32768)},
	{53, 0, "MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH", c(32768)},
	{54, 0, "MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS", c(2046)},
	{55, 0, "MAXIMUM_SURFACE1D_WIDTH", c(32768)},
	{56, 0, "MAXIMUM_SURFACE2D_WIDTH", c(131072)},
	{57, 0, "MAXIMUM_SURFACE2D_HEIGHT", c(65536)},
	{58, 0, "MAXIMUM_SURFACE3D_WIDTH", c(16384)},
	{59, 0, "MAXIMUM_SURFACE3D_HEIGHT", c(16384)},
	{60, 0, "MAXIMUM_SURFACE3D_DEPTH", c(16384)},
	{61, 0, "MAXIMUM_SURFACE1D_LAYERED_WIDTH", c(32768)},
	{62, 0, "MAXIMUM_SURFACE1D_LAYERED_LAYERS", c(2048)},
	{63, 0, "MAXIMUM_SURFACE2D_LAYERED_WIDTH", c(32768)},
	{64, 0, "MAXIMUM_SURFACE2D_LAYERED_HEIGHT", c(32768)},
	{65, 0, "MAXIMUM_SURFACE2D_LAYERED_LAYERS", c(2048)},
	{66, 0, "MAXIMUM_SURFACECUBEMAP_WIDTH", c(32768)},
	{67, 0, "MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH", c(32768)},
	{68, 0, "MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS", c(2046)},
	{69, 0, "MAXIMUM_TEXTURE1D_LINEAR_WIDTH", c(1 << 28)},
	{70, 0, "MAXIMUM_TEXTURE2D_LINEAR_WIDTH", c(131072)},
	{71, 0, "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT", c(65000)},
	{72, 0, "MAXIMUM_TEXTURE2D_LINEAR_PITCH", c(2097120)},
	{73, 0, "MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH", c(32768)},
	{74, 0, "MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT", c(32768)},
	{75, 0, "COMPUTE_CAPABILITY_MAJOR", f(func(g *GPU) int { return g.Capability.Major })},
	{76, 0, "COMPUTE_CAPABILITY_MINOR", f(func(g *GPU) int { return g.Capability.Minor })},
	{77, 0, "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH", c(32768)},
	{78, 0, "STREAM_PRIORITIES_SUPPORTED", c(1)},
	{79, 0, "GLOBAL_L1_CACHE_SUPPORTED", c(1)},
	{80, 0, "LOCAL_L1_CACHE_SUPPORTED", c(1)},
	{81, 0, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", f(func(g *GPU) int { return int(g.Multiprocessor.SharedBytes) })},
	{82, 0, "MAX_REGISTERS_PER_MULTIPROCESSOR", f(func(g *GPU) int { return g.Multiprocessor.Registers })},
	{83, 0, "MANAGED_MEMORY", c(1)},
	{84, 0, "MULTI_GPU_BOARD", c(0)},
	{85, 0, "MULTI_GPU_BOARD_GROUP_ID", c(0)},
	{86, 0, "HOST_NATIVE_ATOMIC_SUPPORTED", c(0)},
	{87, 0, "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO", f(func(g *GPU) int { return g.Multiprocessor.DoubleRatio })},
	{88, 0, "PAGEABLE_MEMORY_ACCESS", c(0)},
	{89, 0, "CONCURRENT_MANAGED_ACCESS", c(1)},
	{90, 0, "COMPUTE_PREEMPTION_SUPPORTED", c(1)},
	{91, 0, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM", c(1)},
	{92, 0, "CAN_USE_STREAM_MEM_OPS_V1", c(0)},
	{93, 0, "CAN_USE_64_BIT_STREAM_MEM_OPS_V1", c(0)},
	{94, 0, "CAN_USE_STREAM_WAIT_VALUE_NOR_V1", c(0)},
	{95, 0, "COOPERATIVE_LAUNCH", c(1)},
	{96, 0, "COOPERATIVE_MULTI_DEVICE_LAUNCH", c(0)},
	{97, 0, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", f(func(g *GPU) int { return int(g.Multiprocessor.BlockOptinBytes) })},
	{98, 0, "CAN_FLUSH_REMOTE_WRITES", c(0)},
	{99, 0, "HOST_REGISTER_SUPPORTED", c(1)},
	{100, 0, "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES", c(0)},
	{101, 0, "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST", c(0)},
	{102, 0, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", c(1)},
	{103, 0, "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED", c(1)},
	{104, 0, "HANDLE_TYPE_WIN32_HANDLE_SUPPORTED", c(0)},
	{105, 0, "HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED", c(0)},
	{106, 0, "MAX_BLOCKS_PER_MULTIPROCESSOR", f(func(g *GPU) int { return g.Multiprocessor.MaxBlocks })},
	{107, 0, "GENERIC_COMPRESSION_SUPPORTED", c(0)},
	{108, 0, "MAX_PERSISTING_L2_CACHE_SIZE", f(func(g *GPU) int { return int(g.Multiprocessor.PersistingL2Bytes) })},
	{109, 0, "MAX_ACCESS_POLICY_WINDOW_SIZE", since(80, 134213632)},
	{110, 0, "GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED", c(0)},
	{111, 0, "RESERVED_SHARED_MEMORY_PER_BLOCK", f(func(g *GPU) int { return int(g.Multiprocessor.BlockReservedBytes) })},
	{112, 11010, "SPARSE_CUDA_ARRAY_SUPPORTED", c(0)},
	{113, 11010, "READ_ONLY_HOST_REGISTER_SUPPORTED", c(1)},
	{114, 11020, "TIMELINE_SEMAPHORE_INTEROP_SUPPORTED", c(0)},
	{115, 11020, "MEMORY_POOLS_SUPPORTED", c(1)},
	{116, 11030, "GPU_DIRECT_RDMA_SUPPORTED", c(0)},
	{117, 11030, "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", c(0)},
	{118, 11030, "GPU_DIRECT_RDMA_WRITES_ORDERING", c(0)},
	{119, 11030, "MEMPOOL_SUPPORTED_HANDLE_TYPES", c(1)},
	{120, 11080, "CLUSTER_LAUNCH", since(90, 1)},
	{121, 11060, "DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED", c(0)},
	{122, 11070, "CAN_USE_64_BIT_STREAM_MEM_OPS", c(1)},
	{123, 11070, "CAN_USE_STREAM_WAIT_VALUE_NOR", c(1)},
	{124, 11070, "DMA_BUF_SUPPORTED", c(0)},
	{125, 12000, "IPC_EVENT_SUPPORTED", c(1)},
	{126, 12000, "MEM_SYNC_DOMAIN_COUNT", f(func(g *GPU) int { return 1 + 3*yes(g.Capability.Number() >= 90) })},
	{127, 12000, "TENSOR_MAP_ACCESS_SUPPORTED", since(90, 1)},
	{128, 12030, "HANDLE_TYPE_FABRIC_SUPPORTED", c(0)},
	{129, 12000, "UNIFIED_FUNCTION_POINTERS", c(0)},
	{130, 12020, "NUMA_CONFIG", c(0)},
	{131, 12020, "NUMA_ID", c(-1)},
	{132, 12010, "MULTICAST_SUPPORTED", f(func(g *GPU) int { return yes(g.Memory.Allocation.Multicast) })},
	{133, 12030, "MPS_ENABLED", c(0)},
	{134, 12020, "HOST_NUMA_ID", c(-1)},
	{135, 12050, "D3D12_CIG_SUPPORTED", c(0)},
	{136, 12080, "MEM_DECOMPRESS_ALGORITHM_MASK", c(0)},
	{137, 12080, "MEM_DECOMPRESS_MAXIMUM_LENGTH", c(0)},
	{138, 12090, "VULKAN_CIG_SUPPORTED", c(0)},
	{139, 12080, "GPU_PCI_DEVICE_ID", f(func(g *GPU) int { return int(int32(g.PCI.DeviceID)) })},
	{140, 12080, "GPU_PCI_SUBSYSTEM_ID", f(func(g *GPU) int { return int(int32(g.PCI.SubsystemID)) })},
	{141, 12090, "HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", c(1)},
	{142, 12090, "HOST_NUMA_MEMORY_POOLS_SUPPORTED", c(1)},
	{143, 12080, "HOST_NUMA_MULTINODE_IPC_SUPPORTED", c(0)},
	{144, 13000, "HOST_MEMORY_POOLS_SUPPORTED", c(1)},
	{145, 13000, "HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", c(0)},
	{146, 13000, "HOST_ALLOC_DMA_BUF_SUPPORTED", c(0)},
	{147, 13000, "ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED", c(0)},
	{148, 13010, "ATOMIC_REDUCTION_SUPPORTED", c(0)},
	{149, 13040, "LOCALITY_DOMAIN_COUNT", c(0)},
	{150, 13040, "MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK", c(0)},
	{151, 13030, "D3D12_CIG_STREAMS_SUPPORTED", c(0)},
	{152, 13030, "DMA_BUF_MMAP_SUPPORTED", c(0)},
	{153, 13030, "LOGICAL_ENDPOINT_UNICAST_SUPPORTED", c(0)},
	{154, 13030, "LOGICAL_ENDPOINT_MULTICAST_SUPPORTED", c(0)},
	{155, 13030, "LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED", c(0)},
	{156, 13030, "LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED", c(0)},
	{157, 13040, "LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT", c(0)},
	{158, 13040, "LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES", c(0)},
	{159, 13050, "VULKAN_CIG_STREAMS_SUPPORTED", c(0)},
	{160, 13050, "TENSOR_MAP_LARGE_TENSOR_MIN_SIZE", c(0)},
	{161, 13040, "GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED", c(0)},
}
