// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queues that a program maps, and its memory regions. See NOTICE.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "dg_device.h"

/**
 * dg_queue_create - allocate a queue for a program to map
 * @context: the program's
 * @size: number of entries, a power of two
 * @entry_size: size of an entry in bytes
 * @key: on success, offset for mmap()
 *
 * It is charged to the program's memory control group. Process context.
 *
 * Return: the queue, for dg_queue_destroy(); NULL: no memory
 */
struct dg_queue *dg_queue_create(struct ib_ucontext *context, u32 size,
				 size_t entry_size, u64 *key)
{
	size_t bytes = PAGE_ALIGN(sizeof(struct siw_dg_ring) +
				  size * entry_size);
	struct dg_queue *queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);

	if (!queue)
		return NULL;
	queue->size = size;
	queue->ring = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!queue->ring ||
	    rdma_user_mmap_entry_insert(context, &queue->entry, bytes)) {
		vfree(queue->ring);
		kfree(queue);
		return NULL;
	}
	*key = rdma_user_mmap_get_offset(&queue->entry);
	return queue;
}

/**
 * dg_queue_destroy - stop using a queue
 * @queue: the queue, or NULL; freed when no call of mmap() uses it
 *
 * Pages that a program has mapped stay its own. Process context.
 */
void dg_queue_destroy(struct dg_queue *queue)
{
	if (queue)
		rdma_user_mmap_entry_remove(&queue->entry);
}

void dg_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct dg_queue *queue = container_of(entry, struct dg_queue, entry);

	vfree(queue->ring);
	kfree(queue);
}

int dg_mmap(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct dg_queue *queue;
	unsigned long addr;
	void *memory;
	int ret = 0;

	/* Fails unless the area is as long as the queue */
	entry = rdma_user_mmap_entry_get(context, vma);
	if (!entry)
		return -EINVAL;
	queue = container_of(entry, struct dg_queue, entry);
	memory = queue->ring;
	for (addr = vma->vm_start; addr < vma->vm_end && !ret;
	     addr += PAGE_SIZE) {
		ret = vm_insert_page(vma, addr, vmalloc_to_page(memory));
		memory += PAGE_SIZE;
	}
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

static int dg_mr_fill_pages(struct dg_mr *mr)
{
	struct sg_page_iter iter;
	size_t i = 0;

	mr->pages = kvmalloc_array(ib_umem_num_pages(mr->umem),
				   sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0)
		mr->pages[i++] = sg_page_iter_page(&iter);
	return 0;
}

struct ib_mr *dg_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			     int access, DG_MR_DMAH struct ib_udata *udata)
{
	struct dg_device *dev = to_dg_device(pd->device);
	struct dg_mr *mr;
	int ret;

	if (!length || length - 1 > U64_MAX - iova ||
	    (unsigned long)start != start || (size_t)length != length)
		return ERR_PTR(-EINVAL);
	/* A peer can reach what a zone opens, and nothing else of a region */
	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		       IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
		       IB_ACCESS_MW_BIND | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = iova;
	mr->length = length;
	mr->writable = access & IB_ACCESS_LOCAL_WRITE;
	mr->remote_writable = access & IB_ACCESS_REMOTE_WRITE;
	refcount_set(&mr->ref, 1);
	init_completion(&mr->unused);
	/* dg_mr_get() may find it as soon as it has a key */
	mr->base.pd = pd;

	mr->umem = ib_umem_get_va(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		ret = PTR_ERR(mr->umem);
		goto free;
	}
	mr->offset = ib_umem_offset(mr->umem);
	ret = dg_mr_fill_pages(mr);
	if (ret)
		goto release;
	ret = xa_alloc(&dev->mrs, &mr->base.lkey, mr,
		       XA_LIMIT(1, DG_MAX_MR), GFP_KERNEL);
	if (ret) {
		ret = -ENOMEM;
		goto release;
	}
	mr->base.rkey = mr->base.lkey;
	return &mr->base;

release:
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
free:
	kfree(mr);
	return ERR_PTR(ret);
}

int dg_dereg_mr(struct ib_mr *base, struct ib_udata *udata)
{
	struct dg_mr *mr = to_dg_mr(base);

	/* Opening a zone keeps the RDMA core from this call, so they get no more */
	if (atomic_read(&mr->zones))
		return -EBUSY;
	xa_erase(&to_dg_device(base->device)->mrs, base->lkey);
	dg_mr_put(mr);
	/* A user copies one message */
	wait_for_completion(&mr->unused);
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
	kfree_rcu(mr, rcu);
	return 0;
}

/**
 * dg_mr_get - find the region that a request names, and check the bounds
 * @dev: the device
 * @pd: PD of the QP
 * @sge: the program's, in memory that it cannot change
 * @write: the memory is to be written
 *
 * Any context.
 *
 * Return: the region, for dg_mr_put(); NULL if the program may not use it so
 */
struct dg_mr *dg_mr_get(struct dg_device *dev, const struct ib_pd *pd,
			const struct siw_dg_sge *sge, bool write)
{
	struct dg_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, sge->lkey);
	if (mr && !refcount_inc_not_zero(&mr->ref))
		mr = NULL;
	rcu_read_unlock();
	if (!mr)
		return NULL;
	if (mr->base.pd == pd && (mr->writable || !write) &&
	    sge->addr >= mr->iova && sge->length <= mr->length &&
	    sge->addr - mr->iova <= mr->length - sge->length)
		return mr;
	dg_mr_put(mr);
	return NULL;
}

/**
 * dg_mr_put - put a reference
 * @mr: from dg_mr_get()
 *
 * Any context.
 */
void dg_mr_put(struct dg_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->unused);
}

/**
 * dg_mr_page - find the page of an address
 * @mr: the region
 * @addr: an address in it
 * @offset: of the address in the page
 *
 * Return: the page
 */
struct page *dg_mr_page(const struct dg_mr *mr, u64 addr, u32 *offset)
{
	u64 from_page = addr - mr->iova + mr->offset;

	*offset = offset_in_page(from_page);
	return mr->pages[from_page >> PAGE_SHIFT];
}
