// The container behind the engine's Injector: it knows how to select a class, and no more.
package conformance;

import java.lang.annotation.Annotation;
import java.util.Iterator;

import javax.enterprise.inject.Instance;
import javax.enterprise.inject.spi.BeanManager;
import javax.enterprise.inject.spi.CDI;
import javax.enterprise.util.TypeLiteral;

final class Container extends CDI<Object> {
    @Override
    public BeanManager getBeanManager() {
        throw new UnsupportedOperationException("bean manager");
    }

    @Override
    @SuppressWarnings("unchecked")
    public <U> Instance<U> select(Class<U> type, Annotation... qualifiers) {
        return (Instance<U>) Beans.instance(Beans.current().get(type));
    }

    @Override
    public <U> Instance<U> select(TypeLiteral<U> type, Annotation... qualifiers) {
        throw new UnsupportedOperationException("select");
    }

    @Override
    public Instance<Object> select(Annotation... qualifiers) {
        throw new UnsupportedOperationException("select");
    }

    @Override
    public boolean isUnsatisfied() {
        return false;
    }

    @Override
    public boolean isAmbiguous() {
        return false;
    }

    @Override
    public void destroy(Object instance) {
        throw new UnsupportedOperationException("destroy");
    }

    @Override
    public Iterator<Object> iterator() {
        throw new UnsupportedOperationException("iterator");
    }

    @Override
    public Object get() {
        throw new UnsupportedOperationException("get");
    }
}
